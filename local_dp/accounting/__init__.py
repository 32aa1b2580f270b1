"""What many losses come to together: losses are data, and every rule of composition is an interpreter of them, rounded towards privacy."""
