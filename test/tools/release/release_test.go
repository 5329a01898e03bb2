package release_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

const root = "../../.."

// load refuses keys that goreleaser does not know.
func load(t *testing.T) config.Project {
	t.Helper()
	project, err := config.Load(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// variable is what the Makefile sets one to.
func variable(t *testing.T, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` *\??= *(.*)$`).FindStringSubmatch(read(t, "Makefile"))
	if found == nil {
		t.Fatalf("the Makefile does not set %s", name)
	}
	return found[1]
}

func TestProgramsAndPlatforms(t *testing.T) {
	wanted := map[string]string{"kubectl-quell": "PLATFORMS", "manager": "MANAGER_PLATFORMS"}
	builds := load(t).Builds
	if len(builds) != len(wanted) {
		t.Errorf("there are %d builds", len(builds))
	}
	for _, build := range builds {
		var platforms []string
		for _, os := range build.Goos {
			for _, arch := range build.Goarch {
				platforms = append(platforms, os+"_"+arch)
			}
		}
		want := strings.Fields(variable(t, wanted[build.ID]))
		slices.Sort(platforms)
		slices.Sort(want)
		if !slices.Equal(platforms, want) {
			t.Errorf("%s is built for %v, and by make for %v", build.ID, platforms, want)
		}
		if _, err := os.Stat(filepath.Join(root, build.Main, "main.go")); err != nil {
			t.Error(err)
		}
		if !strings.Contains(read(t, filepath.Join(build.Main, "main.go")), "\nvar version = ") {
			t.Errorf("%s has no variable main.version to be stamped", build.Main)
		}
	}
}

func TestBuildFlags(t *testing.T) {
	byMake := variable(t, "RELEASE_BUILD")
	for _, build := range load(t).Builds {
		for _, flag := range append(strings.Fields(build.Ldflags[0])[:3], build.Flags...) {
			if !strings.Contains(byMake, flag) {
				t.Errorf("%s is built with %s, which make does not give", build.ID, flag)
			}
		}
		for _, flag := range []string{"-trimpath", "-buildvcs=false"} {
			if !slices.Contains(build.Flags, flag) {
				t.Errorf("%s: without %s the program depends on where it is built", build.ID, flag)
			}
		}
	}
}

// The manifest in cmd/kubectl-quell names the archives that goreleaser makes.
func TestKrew(t *testing.T) {
	project := load(t)
	manifest := read(t, "cmd/kubectl-quell/krew.yaml")
	for _, platform := range strings.Fields(variable(t, "PLATFORMS")) {
		if !strings.Contains(manifest, "/kubectl-quell_"+platform+".tar.gz\n") {
			t.Errorf("krew.yaml does not have %s", platform)
		}
	}
	for _, archive := range project.Archives {
		if archive.NameTemplate != "{{ .Binary }}_{{ .Os }}_{{ .Arch }}" || !slices.Equal(archive.Formats, []string{"tar.gz"}) {
			t.Errorf("archive %s is %s, %v", archive.ID, archive.NameTemplate, archive.Formats)
		}
	}
	krew := project.Krews[0]
	for _, text := range append(strings.Split(strings.TrimSpace(krew.Description), "\n"), krew.Homepage, krew.ShortDescription) {
		if !strings.Contains(manifest, text) {
			t.Errorf("krew.yaml does not say %q", text)
		}
	}
}
