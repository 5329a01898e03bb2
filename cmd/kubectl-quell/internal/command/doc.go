// Package command puts the commands of kubectl quell together.
package command
