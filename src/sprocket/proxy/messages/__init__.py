"""The messages of the service, and what they mean: conversion and checks, all of it pure."""
