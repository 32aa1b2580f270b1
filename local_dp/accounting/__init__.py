"""The total of many losses. Losses are data; every rule of composition interprets them and rounds
towards privacy."""
