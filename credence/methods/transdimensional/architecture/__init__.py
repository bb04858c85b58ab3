"""The posterior of the network's size: in numbers, in words, on a page; and draws given a size."""
