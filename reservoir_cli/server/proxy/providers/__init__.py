"""The protocols between clients and models, one module for each; ``registry`` lists them."""
