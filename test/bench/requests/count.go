package requests

import (
	"net/http"
	"strings"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/localcluster"
)

// version is one stored version of an object.
type version struct{ uid, resourceVersion string }

// read takes in what was logged since it was last called, and tells whether any of it is the contestant's.
func (l *life) read() (more bool, err error) {
	requests, next, err := l.cluster.Next(l.mark, localcluster.NotLeases)
	if err != nil {
		return false, err
	}
	l.mark = next
	for _, r := range requests {
		more = more || l.isContestant(r)
	}
	l.sent = append(l.sent, requests...)
	return more, nil
}

func (l *life) isContestant(r localcluster.Request) bool {
	return strings.HasPrefix(r.UserAgent, l.agent())
}

// count sums up the contestant's requests since it was last called.
//
// A write changed what is stored when the version of the object in the answer is one that no write before has answered with: a
// write that changes nothing answers with the version that there was. All writes of all clients are in the log, and who else writes
// here, the benchmark, changes something each time; so its versions are known first, however close the answers were.
func (l *life) count() figures.RequestRow {
	row := figures.RequestRow{Verbs: map[string]int{}}
	for _, r := range l.sent {
		if !l.isContestant(r) && r.ResourceVersion != "" {
			l.known[version{r.UID, r.ResourceVersion}] = true
		}
	}
	for _, r := range l.sent {
		if !l.isContestant(r) {
			continue
		}
		row.Verbs[r.Verb+" "+resource(r)]++
		if r.Code >= http.StatusBadRequest {
			row.Refused++
		}
		if !localcluster.Writes(r) || isEvent(r) {
			continue
		}
		row.Writes++
		if l.changed(r) {
			row.Changes++
		}
	}
	l.sent = nil
	return row
}

func (l *life) changed(r localcluster.Request) bool {
	if r.Code >= http.StatusBadRequest {
		return false
	}
	answered := version{r.UID, r.ResourceVersion}
	changed := r.Verb == "delete" || !l.known[answered]
	l.known[answered] = true
	return changed
}

// isEvent reports whether a request records an Event. Events are counted among the verbs, and are no part of Writes: which
// ones an operator records is no matter of how it writes status, and the rivals record none.
func isEvent(r localcluster.Request) bool { return r.Resource == "events" }

func resource(r localcluster.Request) string {
	switch {
	case r.Resource == "":
		return "discovery"
	case r.Subresource == "":
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}
