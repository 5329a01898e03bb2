package main

import (
	"os"
	"testing"
)

func TestDocsAreCurrent(t *testing.T) {
	const path = "../../../../docs/kubectl-quell.md"
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != markdown() {
		t.Errorf("%s is stale: run make docs", path)
	}
}
