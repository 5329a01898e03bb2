package app

import (
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

// dnsPort is where names are looked up.
const dnsPort = 53

func wantsNetworkPolicy(app *quellv1alpha1.App) bool { return app.Spec.NetworkPolicy != nil }

// desiredNetworkPolicy is the full apply configuration of an App's NetworkPolicy. A direction of its types without a rule lets
// nothing through. The error is an ssa.InvalidContentError.
func desiredNetworkPolicy(seen observed) (runtime.ApplyConfiguration, error) {
	app, asked := seen.app, seen.app.Spec.NetworkPolicy
	policy := networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: selectorLabels(app)}}
	if asked.Ingress != nil {
		rules, err := policyIngress(app, asked.Ingress)
		if err != nil {
			return nil, err
		}
		policy.Ingress, policy.PolicyTypes = rules, append(policy.PolicyTypes, networkingv1.PolicyTypeIngress)
	}
	if asked.Egress != nil {
		policy.Egress, policy.PolicyTypes = policyEgress(asked.Egress), append(policy.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
	spec, err := as[networkingv1ac.NetworkPolicySpecApplyConfiguration](policy)
	if err != nil {
		return nil, err
	}
	ac := networkingv1ac.NetworkPolicy(app.Name, app.Namespace).WithSpec(spec)
	ac.ObjectMetaApplyConfiguration = childMetadata(app, app.Name, nil)
	return ac, nil
}

// policyIngress has no rule where nobody's traffic is accepted: one without peers would accept everybody's.
func policyIngress(app *quellv1alpha1.App, asked *quellv1alpha1.AppNetworkIngress) ([]networkingv1.NetworkPolicyIngressRule, error) {
	rule := networkingv1.NetworkPolicyIngressRule{From: policyPeers(asked.From)}
	for _, name := range asked.Ports {
		port, err := namedPort(app, "spec.networkPolicy.ingress.ports", name)
		if err != nil {
			return nil, err
		}
		rule.Ports = append(rule.Ports, policyPort(protocol(port), port.ContainerPort))
	}
	if len(rule.From) == 0 {
		return nil, nil
	}
	return []networkingv1.NetworkPolicyIngressRule{rule}, nil
}

// policyEgress lets DNS through in any case, to wherever the cluster or the node has it.
func policyEgress(asked *quellv1alpha1.AppNetworkEgress) []networkingv1.NetworkPolicyEgressRule {
	rules := []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{
		policyPort(corev1.ProtocolUDP, dnsPort), policyPort(corev1.ProtocolTCP, dnsPort),
	}}}
	if peers := policyPeers(asked.To); len(peers) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: peers})
	}
	return rules
}

func policyPort(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	port := intstr.FromInt32(number)
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port}
}

func policyPeers(asked []quellv1alpha1.AppNetworkPeer) []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	for _, p := range asked {
		peer := networkingv1.NetworkPolicyPeer{NamespaceSelector: p.NamespaceSelector}
		if p.App != "" {
			peer.PodSelector = &metav1.LabelSelector{MatchLabels: appLabels(p.App)}
		}
		if p.Namespace != "" {
			peer.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: p.Namespace}}
		}
		if p.CIDR != "" {
			peer.IPBlock = &networkingv1.IPBlock{CIDR: p.CIDR}
		}
		peers = append(peers, peer)
	}
	return peers
}
