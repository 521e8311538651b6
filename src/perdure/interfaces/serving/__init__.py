"""What stands before every face that is reached over the network: who is let in, how much they may send, how it runs."""
