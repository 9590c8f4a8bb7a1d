"""Settings of the shop: PostgreSQL if its environment variables are set, else SQLite."""

import os

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "for development only")
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ.get("PGPORT", "5432"),
        "USER": os.environ.get("PGUSER", "postgres"),
        "NAME": os.environ.get("PGDATABASE", "shop"),
    }
    if "PGHOST" in os.environ
    else {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}
}
