"""What a campaign comes to: the document that every table, figure and page is made from."""
