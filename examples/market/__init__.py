"""A market with sellers and buyers who each know their own cost or value, and talk among sellers."""
