"""The shop in Django.

python manage.py migrate --run-syncdb
SPROCKET_NAMESERVERS=127.0.0.1:9876 python manage.py relay    # in one terminal
python manage.py runserver                                    # in another
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop_settings")
    execute_from_command_line(sys.argv)
