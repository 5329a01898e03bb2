package app_test

import (
	"context"
	"fmt"
	"math"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/hduolab/quell/controller/app"
)

// counter sees every number of Pods that each Deployment of a namespace has asked for, and every number that it had.
type counter struct {
	mu   sync.Mutex
	apps map[string]*counts
}

// counts are those of one Deployment.
type counts struct {
	asked int32
	pods  map[string]bool
	// lowest numbers, and all that were asked for, since begin; the Pods of a new Deployment do not count.
	leastAsked int32
	leastPods  int
	history    []string
}

// countPods counts in a namespace until the spec ends.
func countPods(ctx context.Context, namespace string) *counter {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	deployments, err := clients.AppsV1().Deployments(namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	pods, err := clients.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	c := &counter{apps: map[string]*counts{}}
	go c.follow(deployments)
	go c.follow(pods)
	DeferCleanup(deployments.Stop)
	DeferCleanup(pods.Stop)
	return c
}

func (c *counter) follow(w watch.Interface) {
	for e := range w.ResultChan() {
		c.mu.Lock()
		switch o := e.Object.(type) {
		case *appsv1.Deployment:
			c.of(o.Name).ask(o)
		case *corev1.Pod:
			c.of(o.Labels[app.LabelName]).see(o, e.Type == watch.Deleted)
		}
		c.mu.Unlock()
	}
}

func (c *counter) of(name string) *counts {
	if c.apps[name] == nil {
		c.apps[name] = &counts{pods: map[string]bool{}, leastAsked: math.MaxInt32, leastPods: math.MaxInt32}
	}
	return c.apps[name]
}

func (a *counts) ask(d *appsv1.Deployment) {
	if *d.Spec.Replicas == a.asked {
		return
	}
	a.asked = *d.Spec.Replicas
	a.leastAsked = min(a.leastAsked, a.asked)
	owners := ""
	for _, e := range d.ManagedFields {
		if e.FieldsV1 != nil && e.Subresource != "status" {
			owners += fmt.Sprintf(" %s/%s", e.Manager, e.Subresource)
		}
	}
	a.history = append(a.history, fmt.Sprintf("%d at version %s, managers%s", a.asked, d.ResourceVersion, owners))
}

func (a *counts) see(p *corev1.Pod, gone bool) {
	if gone || p.DeletionTimestamp != nil {
		delete(a.pods, p.Name)
	} else {
		a.pods[p.Name] = true
	}
	if a.leastPods != math.MaxInt32 {
		a.leastPods = min(a.leastPods, len(a.pods))
	}
}

// begin forgets what was seen of an App once it asks for so many Pods and has them.
func (c *counter) begin(ctx context.Context, name string, n int32) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		c.mu.Lock()
		defer c.mu.Unlock()
		a := c.of(name)
		g.Expect(a.asked).To(Equal(n), name)
		g.Expect(a.pods).To(HaveLen(int(n)), name)
		a.leastAsked, a.leastPods, a.history = n, len(a.pods), nil
	}).Should(Succeed())
}

// neverBelow expects that since begin an App was never asked to have, and never had, fewer Pods than floor.
func (c *counter) neverBelow(name string, floor int32) {
	GinkgoHelper()
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.of(name)
	Expect(a.leastAsked).To(BeNumerically(">=", floor), "%s was asked for %v", name, a.history)
	Expect(a.leastPods).To(BeNumerically(">=", floor), "Pods of %s, which was asked for %v", name, a.history)
}
