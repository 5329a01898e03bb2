// Command lint is golangci-lint with the linters for Kubernetes API types compiled in.
//
// golangci-lint takes foreign linters only at build time, so this module pins both and builds one binary; it has the
// command line and exit codes of golangci-lint.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"

	_ "sigs.k8s.io/kube-api-linter"
)

func main() {
	if err := commands.Execute(buildInfo()); err != nil {
		fmt.Fprintf(os.Stderr, "lint: %v\n", err)
		os.Exit(exitcodes.Failure)
	}
}

// buildInfo names the pinned golangci-lint: golangci-lint keys its cache by this version and refuses to read a
// configuration that asks for a newer Go than the one it was built with.
func buildInfo() commands.BuildInfo {
	info := commands.BuildInfo{Version: "unknown", GoVersion: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.GoVersion = build.GoVersion
	for _, dep := range build.Deps {
		if dep.Path == "github.com/golangci/golangci-lint/v2" {
			info.Version = dep.Version
		}
	}
	return info
}
