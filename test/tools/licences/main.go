// Command licences checks the licences of the Go modules that packages are built from, in the module of the current folder.
//
// It is a module of its own, since the texts of all the licences that it knows are nothing that the operator needs.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licenseclassifier/v2/assets"

	classifier "github.com/google/licenseclassifier/v2"
)

const usage = `usage: licences ALLOWED PACKAGES...

ALLOWED are names of licences, separated by commas, as SPDX has them. PACKAGES are patterns of go list; tests count too.
Exit code 1 when a module has another licence, or none that is known.
`

func main() {
	if len(os.Args) < 3 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(strings.Split(os.Args[1], ","), os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(allowed, packages []string, out io.Writer) error {
	known, err := assets.DefaultClassifier()
	if err != nil {
		return fmt.Errorf("read the texts of the licences: %w", err)
	}
	folders, err := modules(packages)
	if err != nil {
		return err
	}
	count := map[string]int{}
	var wrong []error
	for _, module := range slices.Sorted(maps.Keys(folders)) {
		found, err := licences(known, folders[module])
		if err != nil {
			return err
		}
		if len(found) == 0 {
			wrong = append(wrong, fmt.Errorf("%s has no licence that is known: look into %s", module, folders[module]))
		}
		for _, name := range found {
			count[name]++
			if !slices.Contains(allowed, name) {
				wrong = append(wrong, fmt.Errorf("%s has the licence %s, which is not allowed", module, name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(out, "%4d %s\n", count[name], name)
	}
	return errors.Join(wrong...)
}

// modules are the folders of the modules that the packages and their tests need, by module and version.
func modules(packages []string) (map[string]string, error) {
	list := exec.Command("go", append([]string{"list", "-deps", "-test", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"}, packages...)...)
	list.Stderr = os.Stderr
	lines, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules: %w", err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(lines)) {
		if module, folder, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
			folders[module] = folder
		}
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("no module is needed by %v", packages)
	}
	return folders, nil
}

var isLicence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)

// licences are the names of those whose texts are in a folder.
func licences(known *classifier.Classifier, folder string) ([]string, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for licences: %w", err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if file.IsDir() || !isLicence.MatchString(file.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("look for licences: %w", err)
		}
		for _, match := range known.Match(text).Matches {
			if match.MatchType == "License" {
				names[match.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
