"""What a timeline without a report says."""
