"""What all scenarios share: their contract, running one into a folder, attitudes of records."""
