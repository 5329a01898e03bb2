// Package storms has the words in which commands tell of write storms: their report types, tables and rates.
package storms
