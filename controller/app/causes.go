package app

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// Reasons why a rollout makes no progress. Each stands for all the words that Kubernetes has for it.
const (
	reasonPodsRefused   = "PodsRefused"
	reasonQuota         = "QuotaExceeded"
	reasonImagePull     = "ImagePullFailed"
	reasonContainer     = "CreateContainerError"
	reasonCrashLoop     = "CrashLoopBackOff"
	reasonUnschedulable = "Unschedulable"
	reasonMount         = "MountFailed"
	reasonStartup       = "StartupProbeFailing"
	reasonReadiness     = "ReadinessProbeFailing"
)

var causeReasons = []string{
	reasonPodsRefused, reasonQuota, reasonImagePull, reasonContainer, reasonCrashLoop, reasonUnschedulable, reasonMount,
	reasonStartup, reasonReadiness,
}

const (
	// calmAfter is how long a container has to run until its earlier crashes tell nothing any more: the kubelet, too, forgets
	// its back-off then.
	calmAfter = 10 * time.Minute
	// mountRetry is more than the kubelet's longest pause between two attempts to mount a volume, which it records each time.
	mountRetry = 3 * time.Minute
)

// evidence is what tells why a rollout makes no progress.
type evidence struct {
	deployment *appsv1.Deployment
	// pods are some of the newest ReplicaSet.
	pods []corev1.Pod
	// events are warnings about one of them that waits for its volumes.
	events []eventsv1.Event
	now    time.Time
}

// diagnosis is why a rollout makes no progress.
type diagnosis struct {
	finding
	// plain is the message without a detail that may be another at the next look, such as an exit code; "" when it has none.
	plain string
}

// symptoms find causes, the one that counts first: what keeps Pods from being made, then their containers, then from serving.
var symptoms = []func(evidence) []*diagnosis{refusedPods, badImages, badContainers, crashLoops, unscheduled, unmounted, notServing}

// diagnose tells why the rollout makes no progress, nil when the evidence does not. Of several causes of the same weight it is the
// first by its words, since the names of Pods change.
func (e evidence) diagnose() *diagnosis {
	for _, find := range symptoms {
		if causes := find(e); len(causes) > 0 {
			return slices.MinFunc(causes, func(a, b *diagnosis) int {
				return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.message, b.message))
			})
		}
	}
	return nil
}

func because(reason, format string, args ...any) *diagnosis {
	return &diagnosis{finding: *found(reason, format, args...)}
}

// steady is the cause at this look after the one before: of a detail that was another before, nothing is said any more.
func (c *diagnosis) steady(before *diagnosis) *diagnosis {
	if c != nil && c.plain != "" && before != nil && before.reason == c.reason && before.message != c.message {
		c.message = c.plain
	}
	return c
}

// refusalWords are those of the API server on a Pod that hold nothing that changes by itself, such as the Pod's name. Policies
// and webhooks choose their words freely, so those are left out.
var (
	exceededQuota = regexp.MustCompile(`exceeded quota: ([^\s,]+), requested: (.+), used: `)
	refusalWords  = []*regexp.Regexp{
		regexp.MustCompile(`violates PodSecurity .*`),
		regexp.MustCompile(`(?:maximum|minimum) \S+ usage per [^\]]*`),
		regexp.MustCompile(`failed quota: .*`),
		regexp.MustCompile(`no PriorityClass with name \S+ was found`),
		regexp.MustCompile(`serviceaccounts? "[^"]+" not found`),
		regexp.MustCompile(`admission webhook "[^"]+" denied the request`),
		regexp.MustCompile(`ValidatingAdmissionPolicy '[^']+' with binding '[^']+' denied request`),
	}
)

func refusedPods(e evidence) []*diagnosis {
	if c := deploymentCondition(e.deployment, appsv1.DeploymentReplicaFailure); c != nil && c.Status == corev1.ConditionTrue {
		return []*diagnosis{refusedFor(c.Message)}
	}
	return nil
}

func refusedFor(message string) *diagnosis {
	if m := exceededQuota.FindStringSubmatch(message); m != nil {
		return because(reasonQuota, "the Pods do not fit into ResourceQuota %q: it has not enough %s left", m[1], strings.Join(resourcesIn(m[2]), ", "))
	}
	for _, words := range refusalWords {
		if w := words.FindString(message); w != "" {
			return because(reasonPodsRefused, "the Pods are refused: %s", w)
		}
	}
	return because(reasonPodsRefused, "the Pods are refused; the events of their ReplicaSet have the API server's words")
}

// resourcesIn are the names in a list such as pods=1,requests.cpu=2.
func resourcesIn(list string) []string {
	var names []string
	for pair := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, strings.TrimSpace(name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// member is a container of a Pod.
type member struct {
	spec   corev1.Container
	status corev1.ContainerStatus
}

// members are the containers of the Pods that are there to stay, of which the kubelet has told something.
func (e evidence) members() []member {
	var members []member
	for _, p := range e.pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		members = append(members, matched(p.Spec.InitContainers, p.Status.InitContainerStatuses)...)
		members = append(members, matched(p.Spec.Containers, p.Status.ContainerStatuses)...)
	}
	return members
}

func matched(containers []corev1.Container, statuses []corev1.ContainerStatus) []member {
	var members []member
	for _, c := range containers {
		for _, s := range statuses {
			if s.Name == c.Name {
				members = append(members, member{c, s})
			}
		}
	}
	return members
}

// waitsFor reports whether the container waits for one of these reasons.
func (m member) waitsFor(reasons ...string) bool {
	return m.status.State.Waiting != nil && slices.Contains(reasons, m.status.State.Waiting.Reason)
}

// each collects what tell finds in the containers.
func (e evidence) each(tell func(member) *diagnosis) []*diagnosis {
	var causes []*diagnosis
	for _, m := range e.members() {
		if c := tell(m); c != nil {
			causes = append(causes, c)
		}
	}
	return causes
}

func badImages(e evidence) []*diagnosis {
	return e.each(func(m member) *diagnosis {
		switch {
		case m.waitsFor("ErrImageNeverPull"):
			return because(reasonImagePull, "image %q of container %q is not on the node, and imagePullPolicy is Never", m.spec.Image, m.spec.Name)
		case m.waitsFor("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"):
			return because(reasonImagePull, "image %q of container %q cannot be pulled: correct it, or name a Secret with the registry's credentials in spec.imagePullSecrets", m.spec.Image, m.spec.Name)
		}
		return nil
	})
}

// What the kubelet says of settings from which no container can be made.
var (
	missingObject = regexp.MustCompile(`(?i)\b(configmap|secret|persistentvolumeclaim) "([^"]+)" not found`)
	missingKey    = regexp.MustCompile(`couldn't find key (\S+) in (ConfigMap|Secret) [^/\s]+/(\S+)`)
	objectKinds   = map[string]string{"configmap": kindConfigMap, "secret": kindSecret, "persistentvolumeclaim": "PersistentVolumeClaim"}
)

func badContainers(e evidence) []*diagnosis {
	return e.each(func(m member) *diagnosis {
		if !m.waitsFor("CreateContainerConfigError", "CreateContainerError") {
			return nil
		}
		return because(reasonContainer, "container %q cannot be made: %s", m.spec.Name, containerFault(m.status.State.Waiting.Message))
	})
}

func containerFault(message string) string {
	if missing := missingIn(message); missing != "" {
		return missing
	}
	key := missingKey.FindStringSubmatch(message)
	switch {
	case key != nil:
		return fmt.Sprintf("%s %q has no key %q", key[2], key[3], key[1])
	case strings.Contains(message, "runAsNonRoot"):
		return "its image runs as root, which spec.defaults.security forbids: set spec.podSecurityContext.runAsUser to another user's number, or spec.defaults.security to None"
	case strings.Contains(message, "no command specified"):
		return "its image does not say what to run: set spec.command"
	}
	return "the kubelet refuses its settings; the events of its Pods say why"
}

// missingIn words an object that a message says is missing, "" when it says no such thing.
func missingIn(message string) string {
	if m := missingObject.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%s %q does not exist", objectKinds[strings.ToLower(m[1])], m[2])
	}
	return ""
}

func crashLoops(e evidence) []*diagnosis {
	return e.each(func(m member) *diagnosis {
		if !m.crashes(e.now) {
			return nil
		}
		const end = "; its log says why (kubectl logs --previous)"
		c := because(reasonCrashLoop, "container %q ends again and again%s"+end, m.spec.Name, m.lastWords())
		c.plain = because(reasonCrashLoop, "container %q ends again and again"+end, m.spec.Name).message
		return c
	})
}

// crashes reports whether the container ends again and again. Such a one waits, runs and has ended in turns; only what went
// before is always there.
func (m member) crashes(now time.Time) bool {
	s := m.status
	switch {
	case s.Ready: // which an init container is that has done its work
		return false
	case m.waitsFor("CrashLoopBackOff", "RunContainerError"), s.State.Terminated != nil:
		return true
	case s.RestartCount == 0 || s.LastTerminationState.Terminated == nil:
		return false
	}
	return s.State.Running == nil || now.Sub(s.State.Running.StartedAt.Time) < calmAfter
}

// lastWords tell how the container ended.
func (m member) lastWords() string {
	ended := m.status.LastTerminationState.Terminated
	if now := m.status.State.Terminated; now != nil {
		ended = now
	}
	switch {
	case m.waitsFor("RunContainerError"), ended != nil && (ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun"):
		return ": it cannot be started, see its command, args and workingDir"
	case ended == nil:
		return ""
	case ended.Reason == "OOMKilled":
		return ": it needs more memory than resources.limits.memory allows (OOMKilled)"
	}
	return fmt.Sprintf(", with exit code %d", ended.ExitCode)
}

var (
	nodeCount = regexp.MustCompile(`^\d+(?:/\d+)? `)
	// objectName is a name that the scheduler quotes, which may be one made for a single Pod.
	objectName = regexp.MustCompile(`"[^"]*"`)
	// unfit are the scheduler's words on nodes that do not take a Pod, in ours; others are passed on without names of objects.
	unfit = []struct {
		words *regexp.Regexp
		ours  string
	}{
		{regexp.MustCompile(`^Insufficient (\S+)$`), "not enough $1"},
		{regexp.MustCompile(`^Too many pods$`), "no room for more Pods"},
		{regexp.MustCompile(`^node\(s\) had untolerated taint (\{.*\})$`), "taint $1, which spec.tolerations does not tolerate"},
		{regexp.MustCompile(`^node\(s\) had (?:untolerated )?taint.*$`), "taints that spec.tolerations does not tolerate"},
		{regexp.MustCompile(`^node\(s\) didn't match Pod's node affinity/selector$`), "labels that do not match spec.nodeSelector or spec.affinity"},
		{regexp.MustCompile(`^node\(s\) were unschedulable$`), "cordoned"},
		{regexp.MustCompile(`^waiting for ephemeral volume controller .*$`), "a volume's claim does not exist yet"},
		{regexp.MustCompile(`^node\(s\) (.*)$`), "$1"},
	}
)

func unscheduled(e evidence) []*diagnosis {
	var causes []*diagnosis
	for _, p := range e.pods {
		for _, c := range p.Status.Conditions {
			if p.DeletionTimestamp == nil && c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				causes = append(causes, because(reasonUnschedulable, "no node takes the Pods: %s", strings.Join(unfitFor(c.Message), "; ")))
			}
		}
	}
	return causes
}

// unfitFor are the scheduler's reasons without the counts of nodes, and without what preemption would bring.
func unfitFor(message string) []string {
	message, _, _ = strings.Cut(message, "preemption: ")
	if _, after, found := strings.Cut(message, "nodes are available: "); found {
		message = after
	}
	if missing := missingIn(message); missing != "" {
		return []string{missing}
	}
	var reasons []string
	message = strings.TrimSuffix(strings.TrimRight(message, ". "), ". not found")
	for phrase := range strings.SplitSeq(message, ", ") {
		reasons = append(reasons, unfitWord(nodeCount.ReplaceAllString(phrase, "")))
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

func unfitWord(phrase string) string {
	for _, u := range unfit {
		if u.words.MatchString(phrase) {
			phrase = u.words.ReplaceAllString(phrase, u.ours)
			break
		}
	}
	return objectName.ReplaceAllString(phrase, "an object")
}

// unmounted reads the events that the kubelet records at each attempt; an older one tells of a mount that worked since.
func unmounted(e evidence) []*diagnosis {
	var named, other []*diagnosis
	for _, event := range e.events {
		if e.now.Sub(lastSeen(event)) > mountRetry || (event.Reason != "FailedMount" && event.Reason != "FailedAttachVolume") {
			continue
		}
		if missing := missingIn(event.Note); missing != "" {
			named = append(named, because(reasonMount, "a volume of the Pods cannot be mounted: %s", missing))
		} else if m := mountedKey.FindStringSubmatch(event.Note); m != nil {
			named = append(named, because(reasonMount, "volume %q of the Pods cannot be mounted: its source has no key %q", m[1], m[2]))
		} else if volume := volumeIn(event.Note); volume != "" {
			other = append(other, because(reasonMount, "volume %q of the Pods cannot be mounted; the events of the Pods say why", volume))
		}
	}
	if len(named) > 0 {
		return named
	}
	return other
}

var (
	mountedVolume = regexp.MustCompile(`\bvolume "([^"]+)"`)
	unmountedList = regexp.MustCompile(`\bunmounted volumes=\[([^\]]*)\]`)
	mountedKey    = regexp.MustCompile(`\bvolume "([^"]+)".*references non-existent (?:config|secret) key: (\S+)`)
)

// volumeIn is the volume that a message names, the first of several that has no generated name.
func volumeIn(note string) string {
	if m := mountedVolume.FindStringSubmatch(note); m != nil {
		return m[1]
	}
	m := unmountedList.FindStringSubmatch(note)
	if m == nil {
		return ""
	}
	for _, name := range slices.Sorted(slices.Values(strings.FieldsFunc(m[1], func(r rune) bool { return r == ' ' || r == ',' }))) {
		if !strings.HasPrefix(name, "kube-api-access-") {
			return name
		}
	}
	return ""
}

// lastSeen is when an event came last; which field tells depends on who recorded it.
func lastSeen(e eventsv1.Event) time.Time {
	last := e.EventTime.Time
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	if e.DeprecatedLastTimestamp.After(last) {
		last = e.DeprecatedLastTimestamp.Time
	}
	return last
}

func notServing(e evidence) []*diagnosis {
	return e.each(func(m member) *diagnosis {
		s := m.status
		if s.State.Running == nil || s.Ready {
			return nil
		}
		switch started := s.Started == nil || *s.Started; {
		case !started && m.spec.StartupProbe != nil:
			return because(reasonStartup, "container %q runs, but its startup probe does not succeed", m.spec.Name)
		case started && m.spec.ReadinessProbe != nil:
			return because(reasonReadiness, "container %q runs, but its readiness probe does not succeed", m.spec.Name)
		}
		return nil
	})
}
