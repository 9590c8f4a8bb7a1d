"""The plots of the console and of pipelines' reports: ECharts' options, and its script."""
