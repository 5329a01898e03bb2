package app

import (
	"cmp"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"
)

func wantsRoute(app *quellv1alpha1.App) bool { return app.Spec.HTTPRoute != nil }

// desiredRoute is the full apply configuration of an App's HTTPRoute. What the Gateway API sets by default is stated. The error
// is an ssa.InvalidContentError, or tells why the cluster's HTTPRoutes cannot be read.
func desiredRoute(seen observed) (runtime.ApplyConfiguration, error) {
	app, asked := seen.app, seen.app.Spec.HTTPRoute
	if seen.routeError != nil {
		return nil, seen.routeError
	}
	spec := gatewayv1ac.HTTPRouteSpec()
	for _, parent := range asked.ParentRefs {
		spec.WithParentRefs(routeParentRef(parent))
	}
	for _, host := range asked.Hostnames {
		spec.WithHostnames(gatewayv1.Hostname(host))
	}
	rules := asked.Rules
	if len(rules) == 0 {
		rules = []quellv1alpha1.AppRouteRule{{}}
	}
	for i, rule := range rules {
		port, err := routedPort(app, fmt.Sprintf("spec.httpRoute.rules[%d].port", i), rule.Port)
		if err != nil {
			return nil, err
		}
		spec.WithRules(routeRule(rule).WithBackendRefs(gatewayv1ac.HTTPBackendRef().
			WithGroup("").WithKind(kindService).WithName(gatewayv1.ObjectName(app.Name)).WithPort(servicePort(app, port)).WithWeight(1)))
	}
	route := gatewayv1ac.HTTPRoute(app.Name, app.Namespace).WithSpec(spec)
	route.ObjectMetaApplyConfiguration = childMetadata(app, app.Name, asked.Annotations)
	return route, nil
}

func routeParentRef(parent quellv1alpha1.AppRouteParent) *gatewayv1ac.ParentReferenceApplyConfiguration {
	ref := gatewayv1ac.ParentReference().WithGroup(gatewayv1.GroupName).WithKind("Gateway").WithName(gatewayv1.ObjectName(parent.Name))
	if parent.Namespace != "" {
		ref.WithNamespace(gatewayv1.Namespace(parent.Namespace))
	}
	if parent.SectionName != "" {
		ref.WithSectionName(gatewayv1.SectionName(parent.SectionName))
	}
	return ref
}

// routeRule says which requests a rule is for, every request where it does not say.
func routeRule(rule quellv1alpha1.AppRouteRule) *gatewayv1ac.HTTPRouteRuleApplyConfiguration {
	matches := rule.Matches
	if len(matches) == 0 {
		matches = []quellv1alpha1.AppRouteMatch{{}}
	}
	ac := gatewayv1ac.HTTPRouteRule()
	for _, m := range matches {
		match := gatewayv1ac.HTTPRouteMatch().WithPath(gatewayv1ac.HTTPPathMatch().
			WithType(gatewayv1.PathMatchType(cmp.Or(m.PathType, string(gatewayv1.PathMatchPathPrefix)))).
			WithValue(cmp.Or(m.Path, "/")))
		if m.Method != "" {
			match.WithMethod(gatewayv1.HTTPMethod(m.Method))
		}
		for _, h := range m.Headers {
			match.WithHeaders(gatewayv1ac.HTTPHeaderMatch().
				WithType(gatewayv1.HeaderMatchExact).WithName(gatewayv1.HTTPHeaderName(h.Name)).WithValue(h.Value))
		}
		ac.WithMatches(match)
	}
	return ac
}
