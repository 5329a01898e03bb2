package controller_test

import (
	"os"
	"strings"
	"testing"
)

// The README's example is code that compiles: the part of example_test.go between its marks.
func TestREADMEShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(source), "// begin README\n")
	example, _, closed := strings.Cut(rest, "\n// end README")
	if !found || !closed {
		t.Fatal("example_test.go has lost its marks")
	}
	if !strings.Contains(string(readme), "```go\n"+example+"```") {
		t.Errorf("README.md must show this block as it is:\n```go\n%s```", example)
	}
}
