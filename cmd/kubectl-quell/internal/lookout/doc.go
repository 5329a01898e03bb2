// Package lookout finds write storms in a cluster while they go on.
package lookout
