package app

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noon is the time of these tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// podWith is a Pod of shop with one container, as a kubelet reports it.
func podWith(name string, s corev1.ContainerStatus, change ...func(*corev1.Pod)) corev1.Pod {
	s.Name = containerName
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Image: "shop:1"}}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func runningSince(d time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(d)}}}
}

func ended(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: ago(time.Second)}}
}

// restarted is a container that ended before, and how.
func restarted(s corev1.ContainerStatus, times int32, last corev1.ContainerState) corev1.ContainerStatus {
	s.RestartCount, s.LastTerminationState = times, last
	return s
}

func ready(s corev1.ContainerStatus) corev1.ContainerStatus {
	s.Ready = true
	return s
}

func unschedulable(message string) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
	}}}}
}

func probed(p *corev1.Pod) {
	p.Spec.Containers[0].ReadinessProbe, p.Spec.Containers[0].StartupProbe = &corev1.Probe{}, &corev1.Probe{}
}

func failedMount(note string, last time.Duration) eventsv1.Event {
	return eventsv1.Event{Reason: "FailedMount", Note: note, DeprecatedLastTimestamp: ago(last)}
}

func refusedWith(message string) evidence {
	return evidence{deployment: &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message},
	}}}}
}

func TestCauses(t *testing.T) {
	of := func(pods ...corev1.Pod) evidence { return evidence{pods: pods} }
	one := func(s corev1.ContainerStatus) evidence { return of(podWith("shop-1", s)) }
	mount := func(events ...eventsv1.Event) evidence {
		return evidence{pods: []corev1.Pod{podWith("shop-1", waiting("ContainerCreating", ""))}, events: events}
	}
	notStarted := runningSince(time.Minute)
	notStarted.Started = new(bool)
	const (
		pull     = `image "shop:1" of container "app" cannot be pulled: correct it, or name a Secret with the registry's credentials in spec.imagePullSecrets`
		crash    = `container "app" ends again and again%s; its log says why (kubectl logs --previous)`
		config   = `container "app" cannot be made: `
		root     = config + `its image runs as root, which spec.defaults.security forbids: set spec.podSecurityContext.runAsUser to another user's number, or spec.defaults.security to None`
		noFit    = "no node takes the Pods: "
		forbid   = `pods "shop-5f7c9-x7k2p" is forbidden: `
		noRefuse = "the Pods are refused: "
	)
	for name, c := range map[string]struct {
		evidence
		reason, message string
	}{
		"no Pods":                        {of(), "", ""},
		"being made":                     {one(waiting("ContainerCreating", "")), "", ""},
		"runs, without a probe":          {one(runningSince(time.Minute)), "", ""},
		"serves":                         {one(ready(runningSince(time.Minute))), "", ""},
		"serves after a crash":           {one(ready(restarted(runningSince(time.Minute), 3, ended(1, "Error")))), "", ""},
		"on its way out":                 {of(podWith("shop-1", waiting("ErrImagePull", ""), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })), "", ""},
		"image":                          {one(waiting("ErrImagePull", "rpc error: code = NotFound")), reasonImagePull, pull},
		"image, backing off":             {one(waiting("ImagePullBackOff", `Back-off pulling image "shop:1"`)), reasonImagePull, pull},
		"image name":                     {one(waiting("InvalidImageName", "couldn't parse image name")), reasonImagePull, pull},
		"image not on the node":          {one(waiting("ErrImageNeverPull", "")), reasonImagePull, `image "shop:1" of container "app" is not on the node, and imagePullPolicy is Never`},
		"first crash":                    {one(corev1.ContainerStatus{State: ended(1, "Error")}), reasonCrashLoop, fmt.Sprintf(crash, ", with exit code 1")},
		"crash, waits":                   {one(restarted(waiting("CrashLoopBackOff", "back-off 40s"), 3, ended(1, "Error"))), reasonCrashLoop, fmt.Sprintf(crash, ", with exit code 1")},
		"crash, runs again":              {one(restarted(runningSince(time.Second), 4, ended(1, "Error"))), reasonCrashLoop, fmt.Sprintf(crash, ", with exit code 1")},
		"crash, ended again":             {one(restarted(corev1.ContainerStatus{State: ended(1, "Error")}, 5, ended(1, "Error"))), reasonCrashLoop, fmt.Sprintf(crash, ", with exit code 1")},
		"crash long ago":                 {one(restarted(runningSince(11*time.Minute), 1, ended(1, "Error"))), "", ""},
		"memory":                         {one(restarted(waiting("CrashLoopBackOff", ""), 1, ended(137, "OOMKilled"))), reasonCrashLoop, fmt.Sprintf(crash, ": it needs more memory than resources.limits.memory allows (OOMKilled)")},
		"no such command":                {one(waiting("RunContainerError", "exec: \"x\": executable file not found")), reasonCrashLoop, fmt.Sprintf(crash, ": it cannot be started, see its command, args and workingDir")},
		"no such command, waits":         {one(restarted(waiting("CrashLoopBackOff", ""), 2, ended(128, "StartError"))), reasonCrashLoop, fmt.Sprintf(crash, ": it cannot be started, see its command, args and workingDir")},
		"missing ConfigMap":              {one(waiting("CreateContainerConfigError", `configmap "settings" not found`)), reasonContainer, config + `ConfigMap "settings" does not exist`},
		"missing Secret":                 {one(waiting("CreateContainerConfigError", `secret "db" not found`)), reasonContainer, config + `Secret "db" does not exist`},
		"missing key":                    {one(waiting("CreateContainerConfigError", "couldn't find key password in Secret team/db")), reasonContainer, config + `Secret "db" has no key "password"`},
		"root":                           {one(waiting("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "shop-5f7c9-x7k2p_team(uid)", container: app)`)), reasonContainer, root},
		"a user by name":                 {one(waiting("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (nginx), cannot verify user is non-root (pod: "shop-5f7c9-x7k2p_team(uid)", container: app)`)), reasonContainer, root},
		"nothing to run":                 {one(waiting("CreateContainerError", "Error response: no command specified")), reasonContainer, config + "its image does not say what to run: set spec.command"},
		"settings refused":               {one(waiting("CreateContainerError", "context deadline exceeded 4711")), reasonContainer, config + "the kubelet refuses its settings; the events of its Pods say why"},
		"cpu":                            {of(unschedulable("0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")), reasonUnschedulable, noFit + "not enough cpu"},
		"several":                        {of(unschedulable("0/12 nodes are available: 1 node(s) were unschedulable, 2 node(s) had untolerated taint {dedicated: db}, 4 Too many pods, 4 node(s) didn't match Pod's node affinity/selector, 5 Insufficient memory. preemption: not eligible due to preemptionPolicy=Never.")), reasonUnschedulable, noFit + "cordoned; labels that do not match spec.nodeSelector or spec.affinity; no room for more Pods; not enough memory; taint {dedicated: db}, which spec.tolerations does not tolerate"},
		"taints":                         {of(unschedulable("0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate.")), reasonUnschedulable, noFit + "taints that spec.tolerations does not tolerate"},
		"spread":                         {of(unschedulable("0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.")), reasonUnschedulable, noFit + "didn't match pod topology spread constraints"},
		"missing claim":                  {of(unschedulable(`0/2 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/2 nodes are available.`)), reasonUnschedulable, noFit + `PersistentVolumeClaim "data" does not exist`},
		"a claim of a single Pod":        {of(unschedulable(`0/2 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "shop-55c6555957-5s48g-e". not found. preemption: 0/2 nodes are available.`)), reasonUnschedulable, noFit + "a volume's claim does not exist yet"},
		"no volume for a claim":          {of(unschedulable("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found.")), reasonUnschedulable, noFit + "pod has unbound immediate PersistentVolumeClaims"},
		"words that are not known":       {of(unschedulable(`0/2 nodes are available: waiting for resourceclaim "shop-55c6555957-5s48g-gpu" to be made.`)), reasonUnschedulable, noFit + "waiting for resourceclaim an object to be made"},
		"no nodes":                       {of(unschedulable("no nodes available to schedule pods")), reasonUnschedulable, noFit + "no nodes available to schedule pods"},
		"mount without an event":         {mount(), "", ""},
		"mount of a missing ConfigMap":   {mount(failedMount("Unable to attach or mount volumes: unmounted volumes=[config kube-api-access-x7k2p]", 0), failedMount(`MountVolume.SetUp failed for volume "config" : configmap "settings" not found`, time.Minute)), reasonMount, `a volume of the Pods cannot be mounted: ConfigMap "settings" does not exist`},
		"mount of a missing key":         {mount(failedMount(`MountVolume.SetUp failed for volume "config" : configmap references non-existent config key: a.yaml`, 0)), reasonMount, `volume "config" of the Pods cannot be mounted: its source has no key "a.yaml"`},
		"mount":                          {mount(failedMount(`MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32`, 0)), reasonMount, `volume "nfs" of the Pods cannot be mounted; the events of the Pods say why`},
		"mount that takes too long":      {mount(failedMount("Unable to attach or mount volumes: unmounted volumes=[kube-api-access-x7k2p nfs], unattached volumes=[], failed to process volumes=[]: context deadline exceeded", 0)), reasonMount, `volume "nfs" of the Pods cannot be mounted; the events of the Pods say why`},
		"mount of a token":               {mount(failedMount("Unable to attach or mount volumes: unmounted volumes=[kube-api-access-x7k2p]: timed out", 0)), "", ""},
		"another warning":                {mount(eventsv1.Event{Reason: "FailedCreatePodSandBox", Note: `volume "x"`, DeprecatedLastTimestamp: ago(0)}), "", ""},
		"mount that worked since":        {mount(failedMount(`MountVolume.SetUp failed for volume "config" : configmap "settings" not found`, 4*time.Minute)), "", ""},
		"readiness":                      {of(podWith("shop-1", runningSince(time.Minute), probed)), reasonReadiness, `container "app" runs, but its readiness probe does not succeed`},
		"startup":                        {of(podWith("shop-1", notStarted, probed)), reasonStartup, `container "app" runs, but its startup probe does not succeed`},
		"quota":                          {refusedWith(forbid + "exceeded quota: team-a, requested: requests.cpu=2,pods=1, used: requests.cpu=9,pods=10, limited: requests.cpu=10,pods=10"), reasonQuota, `the Pods do not fit into ResourceQuota "team-a": it has not enough pods, requests.cpu left`},
		"quota wants limits":             {refusedWith(forbid + "failed quota: team-a: must specify limits.cpu for: app"), reasonPodsRefused, noRefuse + "failed quota: team-a: must specify limits.cpu for: app"},
		"Pod security":                   {refusedWith(forbid + `violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true)`), reasonPodsRefused, noRefuse + `violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true)`},
		"limit range":                    {refusedWith(forbid + "[maximum cpu usage per Container is 1, but limit is 2, minimum memory usage per Pod is 1Gi, but request is 1Mi]"), reasonPodsRefused, noRefuse + "maximum cpu usage per Container is 1, but limit is 2, minimum memory usage per Pod is 1Gi, but request is 1Mi"},
		"priority class":                 {refusedWith(forbid + "no PriorityClass with name high was found"), reasonPodsRefused, noRefuse + "no PriorityClass with name high was found"},
		"service account":                {refusedWith(forbid + `error looking up service account team/shop: serviceaccount "shop" not found`), reasonPodsRefused, noRefuse + `serviceaccount "shop" not found`},
		"webhook":                        {refusedWith(`admission webhook "images.example.com" denied the request: trace 4711`), reasonPodsRefused, noRefuse + `admission webhook "images.example.com" denied the request`},
		"policy":                         {refusedWith(`pods "shop-5f7c9-x7k2p" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: shop-5f7c9-x7k2p is no good`), reasonPodsRefused, noRefuse + "ValidatingAdmissionPolicy 'p' with binding 'b' denied request"},
		"other refusal":                  {refusedWith("Internal error occurred: 4711"), reasonPodsRefused, "the Pods are refused; the events of their ReplicaSet have the API server's words"},
		"an image before a crash":        {of(podWith("a", restarted(waiting("CrashLoopBackOff", ""), 1, ended(1, "Error"))), podWith("b", waiting("ErrImagePull", ""))), reasonImagePull, pull},
		"a crash before a lack of nodes": {of(unschedulable("0/1 nodes are available: 1 Insufficient cpu."), podWith("b", restarted(waiting("CrashLoopBackOff", ""), 1, ended(1, "Error")))), reasonCrashLoop, fmt.Sprintf(crash, ", with exit code 1")},
		"two exit codes":                 {of(podWith("a", restarted(waiting("CrashLoopBackOff", ""), 1, ended(2, "Error"))), podWith("b", restarted(waiting("CrashLoopBackOff", ""), 1, ended(1, "Error")))), reasonCrashLoop, fmt.Sprintf(crash, ", with exit code 1")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.now = noon
			if c.deployment == nil {
				c.deployment = &appsv1.Deployment{}
			}
			got := c.diagnose()
			slices.Reverse(c.pods) // the order of Pods, and so their names, do not matter
			g.Expect(c.diagnose()).To(Equal(got))
			if c.reason == "" {
				g.Expect(got).To(BeNil())
				return
			}
			g.Expect(got).NotTo(BeNil())
			g.Expect(got.finding).To(Equal(finding{c.reason, c.message}))
			g.Expect(causeReasons).To(ContainElement(got.reason))
		})
	}
}

// A container whose exit code is another each time must not make the message another each time.
func TestADetailThatMovesIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	look := func(code int32) *diagnosis {
		e := evidence{deployment: &appsv1.Deployment{}, now: noon, pods: []corev1.Pod{podWith("shop-1", restarted(waiting("CrashLoopBackOff", ""), 1, ended(code, "Error")))}}
		return e.diagnose()
	}
	first := look(1).steady(nil)
	g.Expect(first.message).To(ContainSubstring("exit code 1"))
	same := look(1).steady(first)
	g.Expect(same.message).To(Equal(first.message))
	other := look(2).steady(same)
	g.Expect(other.message).NotTo(ContainSubstring("exit code"))
	g.Expect(look(1).steady(other).message).To(Equal(other.message))
	var none *diagnosis
	g.Expect(none.steady(other)).To(BeNil())
	fresh := look(1).steady(&diagnosis{finding: finding{reasonImagePull, "x"}})
	g.Expect(fresh.message).To(ContainSubstring("exit code 1"))
}

func TestAnEventIsAsOldAsItsLastOccurrence(t *testing.T) {
	g := NewWithT(t)
	e := eventsv1.Event{EventTime: metav1.NewMicroTime(noon.Add(-time.Hour))}
	g.Expect(lastSeen(e)).To(Equal(noon.Add(-time.Hour)))
	e.DeprecatedLastTimestamp = ago(time.Minute)
	g.Expect(lastSeen(e)).To(Equal(noon.Add(-time.Minute)))
	e.Series = &eventsv1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon)}
	g.Expect(lastSeen(e)).To(Equal(noon))
}
