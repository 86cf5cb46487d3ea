"""Looking at machines and runs: trees in text, pictures, and reports that open in a browser."""
