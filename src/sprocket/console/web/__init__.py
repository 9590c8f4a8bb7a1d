"""The frame of the console's pages: sessions, navigation, tables, plots, forms and changes."""
