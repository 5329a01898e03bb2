// Package chart draws lines over time as SVG with a legend, to be put into a page. It needs no script and no file beside it.
package chart
