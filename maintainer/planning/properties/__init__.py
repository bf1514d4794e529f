"""Plans changes of table properties, and knows how Delta spells and reads their values."""
