// Package release holds .goreleaser.yaml to goreleaser's own types, and to what make release-snapshot and the krew manifest say of
// the same release. It is a module of its own, which pins cyclonedx-gomod as a tool, too: it makes the SBOMs.
package release
