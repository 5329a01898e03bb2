// Package page writes what was found about storms as one HTML file that needs no network and no script.
package page
