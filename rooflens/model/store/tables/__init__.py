"""Make the rows of the store's tables of records, column by column, and read them back."""
