"""Monitor: checks a random share of live rows and alarms when a promise is broken."""
