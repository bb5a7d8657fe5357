"""What is done with what logs leave open: one policy a file, each says what it did."""
