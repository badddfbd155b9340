"""What the machines behind a pull request read: GitHub's annotations and job summary, and SARIF."""
