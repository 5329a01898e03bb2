// Package transitions tells how the owners of an object's fields change: live, or between versions in a file.
package transitions
