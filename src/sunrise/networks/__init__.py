"""Networks and what they are made of: layers, convolutions, encoders, augmentations."""
