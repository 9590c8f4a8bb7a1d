"""The addresses of the shop."""

from django.urls import path

from shop.views import order

urlpatterns = [path("orders", order)]
