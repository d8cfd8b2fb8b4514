"""Speed, side by side with a peer; outside what is shipped."""
