package localcluster

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Request is one request that the API server answered, as its audit log tells.
type Request struct {
	Time time.Time // when the request came in
	// Verb is get, list, watch, create, update, patch (an apply too), delete or deletecollection.
	Verb string
	// Group, Resource and Subresource are empty for a request outside the resources, which has only Path (like /readyz).
	Group, Resource, Subresource string
	// Namespace and Name name the object. Name is empty for lists, and for a create that leaves the name to the server.
	Namespace, Name string
	Path            string
	// User is who the request was authenticated as; of an impersonating request, the impersonator.
	User, UserAgent string
	FieldManager    string // as the request named it; empty when left to the server
	DryRun          bool
	Code            int // HTTP status of the answer
	// UID and ResourceVersion are those of the object in the answer, empty unless the audit policy has answers logged.
	UID, ResourceVersion string
}

// Mark is a point in the audit log.
type Mark int64

// Filter says whether to keep a request.
type Filter func(Request) bool

// ByUserAgent keeps the requests whose user agent begins with prefix. client-go sets it from rest.Config.UserAgent.
func ByUserAgent(prefix string) Filter {
	return func(r Request) bool { return strings.HasPrefix(r.UserAgent, prefix) }
}

// ByUser keeps the requests of the user with exactly this name; a ServiceAccount is system:serviceaccount:<namespace>:<name>.
func ByUser(name string) Filter {
	return func(r Request) bool { return r.User == name }
}

// Writes keeps what asks to change an object, refused or not, dry run or not. Reviews (of tokens, of access) and token
// requests are created but change nothing, so they are no writes.
func Writes(r Request) bool {
	switch r.Verb {
	case "create":
		review := r.Group == "authentication.k8s.io" || r.Group == "authorization.k8s.io"
		return !review && r.Subresource != "token"
	case "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// NotLeases drops requests for Leases: leader election and node heartbeats go on in a quiet cluster.
func NotLeases(r Request) bool { return r.Group != "coordination.k8s.io" || r.Resource != "leases" }

// Mark returns the present end of the audit log, to be given to Requests later.
func (c *Cluster) Mark() (Mark, error) {
	info, err := os.Stat(c.auditLog)
	if err != nil {
		return 0, fmt.Errorf("mark the audit log: %w", err)
	}
	return Mark(info.Size()), nil
}

// Requests returns the requests answered since the mark (0 for all) that every filter keeps, in the order of their
// answers. It works after Kill(APIServer) too, and on kept data after Stop.
//
// The count is exact: the API server writes the line before it ends the answer, so a request whose answer a client has
// read to its end is counted, once. A request still under way at the mark, or now, may fall on either side. Watches and other
// long-running requests count when they begin. An unreadable line is an error, never skipped.
func (c *Cluster) Requests(since Mark, keep ...Filter) ([]Request, error) {
	requests, _, err := c.Next(since, keep...)
	return requests, err
}

// Next is Requests, and the mark to go on from: in a row of calls each request is returned once.
func (c *Cluster) Next(since Mark, keep ...Filter) ([]Request, Mark, error) {
	file, err := os.Open(c.auditLog)
	if err != nil {
		return nil, since, fmt.Errorf("open the audit log: %w", err)
	}
	defer file.Close()
	reader, start, err := readerAt(file, int64(since))
	if err != nil {
		return nil, since, fmt.Errorf("read the audit log: %w", err)
	}
	requests, read, err := readRequests(reader, keep)
	if err != nil {
		return nil, since, fmt.Errorf("read the audit log %s: %w", c.auditLog, err)
	}
	return requests, Mark(start + read), nil
}

// readerAt starts at the first line that begins at or after offset, and returns where that is: a mark may fall into a line being
// written.
func readerAt(file io.ReadSeeker, offset int64) (*bufio.Reader, int64, error) {
	reader := bufio.NewReader(file)
	if offset == 0 {
		return reader, 0, nil
	}
	if _, err := file.Seek(offset-1, io.SeekStart); err != nil {
		return nil, 0, err
	}
	skipped, err := reader.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return reader, offset - 1 + int64(len(skipped)), nil
}

// readRequests also returns how many bytes the whole lines took.
func readRequests(reader *bufio.Reader, keep []Filter) ([]Request, int64, error) {
	var requests []Request
	var read int64
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, read, nil // what is left has no end yet: its request was not answered
		}
		if err != nil {
			return nil, read, err
		}
		request, counts, err := parseAuditLine(line)
		if err != nil {
			return nil, read, err
		}
		read += int64(len(line))
		if counts && kept(request, keep) {
			requests = append(requests, request)
		}
	}
}

func kept(r Request, keep []Filter) bool {
	return !slices.ContainsFunc(keep, func(f Filter) bool { return !f(r) })
}

// auditEvent is the part of audit.k8s.io/v1 Event that is needed here.
type auditEvent struct {
	Stage                    string    `json:"stage"`
	RequestURI               string    `json:"requestURI"`
	Verb                     string    `json:"verb"`
	UserAgent                string    `json:"userAgent"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	ResponseObject struct {
		Metadata struct {
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	} `json:"responseObject"`
}

// parseAuditLine returns the request and whether this line is the one of its lines that counts.
func parseAuditLine(line []byte) (Request, bool, error) {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return Request{}, false, fmt.Errorf("audit line %.200q: %w", line, err)
	}
	uri, err := url.ParseRequestURI(event.RequestURI)
	if err != nil {
		return Request{}, false, fmt.Errorf("audit line %.200q: %w", line, err)
	}
	query := uri.Query()
	return Request{
		Time:         event.RequestReceivedTimestamp,
		Verb:         event.Verb,
		Group:        event.ObjectRef.APIGroup,
		Resource:     event.ObjectRef.Resource,
		Subresource:  event.ObjectRef.Subresource,
		Namespace:    event.ObjectRef.Namespace,
		Name:         event.ObjectRef.Name,
		Path:         uri.Path,
		User:         event.User.Username,
		UserAgent:    event.UserAgent,
		FieldManager: query.Get("fieldManager"),
		DryRun:       query.Has("dryRun"),
		Code:         event.ResponseStatus.Code,

		UID:             event.ResponseObject.Metadata.UID,
		ResourceVersion: event.ResponseObject.Metadata.ResourceVersion,
	}, event.counts(), nil
}

// counts picks one line per request. Only long-running requests, and those refused before they had a user, have a line
// at the stage ResponseStarted; the former have a second one when they end.
func (e auditEvent) counts() bool {
	switch e.Stage {
	case "ResponseStarted":
		return true
	case "ResponseComplete", "Panic":
		return !e.longRunning()
	}
	return false
}

// longRunning repeats the API server's own rule (BasicLongRunningRequestCheck in its server package).
func (e auditEvent) longRunning() bool {
	return e.Verb == "watch" || e.Verb == "proxy" ||
		slices.Contains([]string{"attach", "exec", "proxy", "log", "portforward"}, e.ObjectRef.Subresource)
}

// trimPartialLine drops what a killed API server left of a line, so that the next one's first line is whole.
func trimPartialLine(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	defer file.Close()
	end, err := lastLineEnd(file)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if err := file.Truncate(end); err != nil {
		return fmt.Errorf("cut the audit log: %w", err)
	}
	return nil
}

// lastLineEnd returns the offset behind the last newline, looking from the end.
func lastLineEnd(file *os.File) (int64, error) {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	const chunk = 64 << 10
	for end > 0 {
		block := make([]byte, min(chunk, end))
		if _, err := file.ReadAt(block, end-int64(len(block))); err != nil {
			return 0, err
		}
		end -= int64(len(block))
		if i := bytes.LastIndexByte(block, '\n'); i >= 0 {
			return end + int64(i) + 1, nil
		}
	}
	return 0, nil
}

// Summary returns a table of the requests, grouped by verb, resource, subresource, user agent and user, the most
// frequent first: what to print when a count is not the expected one.
func Summary(requests []Request) string {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.group()]++
	}
	groups := make([]string, 0, len(counts))
	for group := range counts {
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COUNT\tVERB\tRESOURCE\tUSER AGENT\tUSER")
	for _, group := range groups {
		fmt.Fprintf(table, "%d\t%s\n", counts[group], group)
	}
	table.Flush()
	return text.String()
}

func (r Request) group() string {
	resource := r.Path
	if r.Resource != "" {
		resource = strings.Join(slices.DeleteFunc([]string{r.Resource, r.Subresource}, isEmpty), "/")
		resource = strings.Join(slices.DeleteFunc([]string{resource, r.Group}, isEmpty), ".")
	}
	return strings.Join([]string{r.Verb, resource, r.UserAgent, r.User}, "\t")
}

func isEmpty(s string) bool { return s == "" }
