// Package checkout takes from the repository what the programs and suites under test/ need of it: they are run in a checkout.
package checkout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const module = "github.com/hduolab/quell"

// Find returns the folder of the checkout. It asks the go command, which looks from the working directory.
func Find(ctx context.Context) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the checkout of %s, in which this has to be run: %w", module, err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// Build builds a program of cmd/ into a file. Its error holds what the compiler says.
func Build(ctx context.Context, name, file string) error {
	dir, err := Find(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, "./cmd/"+name)
	cmd.Dir = dir                                   // and so with the modules of the checkout's own go.mod
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make does, to share its build cache
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// InstallDefinitions creates or updates the CustomResourceDefinitions of config/crd in a cluster, and returns when they are served.
func InstallDefinitions(ctx context.Context, config *rest.Config) error {
	dir, err := Find(ctx)
	if err != nil {
		return err
	}
	o := envtest.CRDInstallOptions{Paths: []string{filepath.Join(dir, "config", "crd")}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(config, o); err != nil {
		return fmt.Errorf("install Quell's CustomResourceDefinitions: %w", err)
	}
	return nil
}
