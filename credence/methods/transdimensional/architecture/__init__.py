"""What chains say of the network's size: its posterior, in words, on a page; draws given a size."""
