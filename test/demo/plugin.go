package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// storm is what the plugin reports of one object: those fields of its JSON that the page shows.
type storm struct {
	Object struct {
		Group     string `json:"group"`
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"object"`
	Verdict string  `json:"verdict"`
	Peak    float64 `json:"peak"`
	Writers []struct {
		Manager     string `json:"manager"`
		Operation   string `json:"operation"`
		Subresource string `json:"subresource"`
	} `json:"writers"`
	Fields []struct {
		Path   string   `json:"path"`
		Values []string `json:"values"`
	} `json:"fields"`
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy"`
}

// askPlugin runs kubectl quell storm twice at once: for the person who watches, and as JSON for the page.
func (s *story) askPlugin(ctx context.Context) ([]storm, error) {
	args := []string{"storm", "--for=" + s.named.String()}
	s.screen.say("%s$ kubectl quell %s", indent, strings.Join(args, " "))
	var report bytes.Buffer
	lines := &lineWriter{out: s.screen}
	told, silent := s.pluginCommand(ctx, lines, args...), s.pluginCommand(ctx, &report, append(args, "--output=json")...)
	told.Stderr = lines
	if err := told.Start(); err != nil {
		return nil, fmt.Errorf("start kubectl quell: %w", err)
	}
	silentErr := silent.Run()
	if err := told.Wait(); err != nil {
		return nil, fmt.Errorf("kubectl quell storm: %w", err)
	}
	lines.flush()
	if silentErr != nil {
		return nil, fmt.Errorf("kubectl quell storm: %w", silentErr)
	}
	var found struct {
		Storms []storm `json:"storms"`
	}
	if err := json.Unmarshal(report.Bytes(), &found); err != nil {
		return nil, fmt.Errorf("read what kubectl quell storm reports: %w", err)
	}
	return found.Storms, nil
}

func (s *story) pluginCommand(ctx context.Context, out io.Writer, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.plugin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig())
	cmd.Stdout = out
	return cmd
}

// lineWriter passes whole lines on. A command's two outputs may be the same one: then it writes to them in turn.
type lineWriter struct {
	out  io.Writer
	rest []byte
}

func (l *lineWriter) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	if end := bytes.LastIndexByte(l.rest, '\n') + 1; end > 0 {
		if _, err := l.out.Write(l.rest[:end]); err != nil {
			return 0, err
		}
		l.rest = slices.Clone(l.rest[end:])
	}
	return len(text), nil
}

func (l *lineWriter) flush() {
	if len(l.rest) > 0 {
		l.out.Write(l.rest) //nolint:errcheck // a screen has nobody to tell
	}
}

// verdict is what is to be said of storms that are alike.
type verdict struct {
	Objects, Fields, Managers, Verdict string
	// Peak is the highest rate of one object, in writes per second.
	Peak     float64
	Evidence []string
	Remedy   string
	count    int
	first    string
}

// verdicts puts storms together that differ in the object alone.
func verdicts(storms []storm) []verdict {
	var found []verdict
	for _, s := range storms {
		v := s.verdict()
		i := slices.IndexFunc(found, func(f verdict) bool {
			return f.Verdict == v.Verdict && f.Fields == v.Fields && f.Managers == v.Managers
		})
		if i < 0 {
			found = append(found, v)
			continue
		}
		found[i].count++
		found[i].Peak = max(found[i].Peak, v.Peak)
		found[i].Objects = fmt.Sprintf("%s and %d more", found[i].first, found[i].count-1)
	}
	return found
}

func (s storm) verdict() verdict {
	object := fmt.Sprintf("%s.%s/%s/%s", s.Object.Resource, s.Object.Group, s.Object.Namespace, s.Object.Name)
	v := verdict{Objects: object, first: object, count: 1, Verdict: s.Verdict, Peak: s.Peak, Evidence: s.Evidence, Remedy: s.Remedy}
	var fields, managers []string
	for _, f := range s.Fields {
		fields = append(fields, f.Path)
	}
	for _, w := range s.Writers {
		how := strings.TrimSuffix(w.Operation+"/"+w.Subresource, "/")
		managers = append(managers, fmt.Sprintf("%s (%s)", w.Manager, how))
	}
	v.Fields, v.Managers = strings.Join(fields, ", "), strings.Join(managers, ", ")
	return v
}
