"""Chat models and embedders, asked within a deadline and outside any transaction. Writes usage only."""
