package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// event has those fields of an audit event that are used here.
type event struct {
	APIVersion     string          `json:"apiVersion"`
	Kind           string          `json:"kind"`
	Level          string          `json:"level"`
	Stage          string          `json:"stage"`
	RequestURI     string          `json:"requestURI"`
	Verb           string          `json:"verb"`
	User           user            `json:"user"`
	UserAgent      string          `json:"userAgent"`
	ObjectRef      *reference      `json:"objectRef"`
	ResponseStatus *status         `json:"responseStatus"`
	Received       time.Time       `json:"requestReceivedTimestamp"`
	StageTime      time.Time       `json:"stageTimestamp"`
	ResponseObject json.RawMessage `json:"responseObject"`
}

type user struct {
	Username string `json:"username"`
}

type reference struct {
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	APIGroup    string `json:"apiGroup"`
	APIVersion  string `json:"apiVersion"`
	Subresource string `json:"subresource"`
}

type status struct {
	Code int `json:"code"`
}

// maxName is the length beyond which names are cut, so that no request can make the analysis keep long ones.
const maxName = 300

func parse(line []byte) (*event, error) {
	e := &event{}
	if err := json.Unmarshal(line, e); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if e.Kind != "Event" || !strings.HasPrefix(e.APIVersion, "audit.k8s.io/") {
		return nil, errors.New("not an event of audit.k8s.io")
	}
	if e.when().IsZero() {
		return nil, errors.New("the event has no time")
	}
	for _, text := range e.names() {
		if len(*text) > maxName {
			*text = strings.ToValidUTF8((*text)[:maxName], "")
		}
		*text = strings.Clone(*text)
	}
	return e, nil
}

func (e *event) names() []*string {
	names := []*string{&e.User.Username, &e.UserAgent, &e.Verb, &e.Level}
	if e.ObjectRef != nil {
		r := e.ObjectRef
		names = append(names, &r.Resource, &r.Namespace, &r.Name, &r.APIGroup, &r.APIVersion, &r.Subresource)
	}
	return names
}

func (e *event) when() time.Time {
	if e.StageTime.IsZero() {
		return e.Received
	}
	return e.StageTime
}

// isEnd reports whether the event is the last of its request; each request is counted once. One whose user could not be
// authenticated has no later stage than the start of the response.
func (e *event) isEnd() bool {
	return e.Stage == "ResponseComplete" || e.Stage == "Panic" || e.Stage == "ResponseStarted" && e.code() == http.StatusUnauthorized
}

func (e *event) code() int {
	if e.ResponseStatus == nil {
		return 0
	}
	return e.ResponseStatus.Code
}

func (e *event) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) && e.ObjectRef != nil
}

func (e *event) isRead() bool { return (e.Verb == "get" || e.Verb == "list") && e.ObjectRef != nil }

// query are the parameters of the request; none where the address cannot be read.
func (e *event) query() url.Values {
	_, query, _ := strings.Cut(e.RequestURI, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	return values
}

func (e *event) key() storm.Key {
	if e.ObjectRef == nil {
		return storm.Key{}
	}
	r := e.ObjectRef
	return storm.Key{GroupResource: schema.GroupResource{Group: r.APIGroup, Resource: r.Resource}, Namespace: r.Namespace, Name: r.Name}
}

// ofObject are the subresources through which an object itself is written.
var ofObject = []string{"", "status", "scale", "finalize", "approval", "ephemeralcontainers", "resize"}

// change is the version that a write made, or false when it made none that is known of.
func (e *event) change() (c storm.Change, madeOne bool) {
	if !e.isWrite() || !slices.Contains(ofObject, e.ObjectRef.Subresource) || e.code() < 200 || e.code() > 299 {
		return c, false
	}
	query := e.query()
	if query.Has("dryRun") {
		return c, false
	}
	c = storm.Change{Key: e.key(), Time: e.when(), Writer: e.writer(query)}
	e.fill(&c)
	if e.Verb == "delete" && c.ResourceVersion == "" {
		c.Type = storm.Deleted // with finalizers a delete returns the object, which stays
	}
	return c, c.Name != "" // a generated name is known from the response only
}

// writer is the field manager as the API server finds it: as given, else the user agent's first part.
func (e *event) writer(query url.Values) *fieldowners.Owner {
	o := fieldowners.Owner{Manager: query.Get("fieldManager"), Subresource: e.ObjectRef.Subresource, Operation: metav1.ManagedFieldsOperationUpdate}
	if e.ObjectRef.APIVersion != "" {
		o.APIVersion = schema.GroupVersion{Group: e.ObjectRef.APIGroup, Version: e.ObjectRef.APIVersion}.String()
	}
	if e.Verb == "patch" && o.Manager != "" {
		o.Operation = "" // the log does not tell an apply, which always has a field manager, from other patches with one
		if query.Has("force") {
			o.Operation = metav1.ManagedFieldsOperationApply
		}
	}
	if len(o.Manager) > maxName {
		o.Manager = strings.ToValidUTF8(o.Manager[:maxName], "")
	}
	if o.Manager == "" {
		o.Manager, _, _ = strings.Cut(e.UserAgent, "/")
	}
	o.Manager = strings.Clone(o.Manager) // which would keep the whole address
	return &o
}

// fill takes over what the response tells, which there is at the level RequestResponse only.
func (e *event) fill(c *storm.Change) {
	var meta metav1.PartialObjectMetadata
	var object map[string]any
	if len(e.ResponseObject) == 0 || json.Unmarshal(e.ResponseObject, &meta) != nil || utiljson.Unmarshal(e.ResponseObject, &object) != nil {
		return
	}
	if object == nil || meta.Kind == "Status" && meta.APIVersion == "v1" {
		return
	}
	if c.Name == "" && len(meta.Name) <= maxName {
		c.Name = meta.Name
	}
	c.ResourceVersion, c.UID = meta.ResourceVersion, meta.UID
	if e.ObjectRef.Subresource == "scale" {
		return // a Scale shows a part of the object
	}
	c.Generation, c.ManagedFields, c.Object = meta.Generation, meta.ManagedFields, object
}
