package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// set is a set of labels.
type set map[string]bool

// prometheusOwn are the metrics that Prometheus makes itself.
var prometheusOwn = catalog{
	"up":     {kind: "gauge"},
	"ALERTS": {kind: "gauge", labels: setOf("alertname", "alertstate", "severity")},
}

// targetLabels are what Prometheus adds to the metrics of a Pod. The label namespace is not, since the ServiceMonitor drops it.
var targetLabels = []string{"job", "instance", "pod", "service", "endpoint", "container"}

// check returns what is wrong with queries, each in a line. Recording rules are read first, in their order.
func check(queries []query, known catalog) []string {
	c := &checker{known: maps.Clone(known)}
	maps.Copy(c.known, prometheusOwn)
	queries = slices.Clone(queries)
	slices.SortStableFunc(queries, func(a, b query) int { return cmp.Compare(min(1, len(b.record)), min(1, len(a.record))) })
	for _, q := range queries {
		c.where = q.where
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
		if err != nil {
			c.fault("%s: %v", q.expr, err)
			continue
		}
		result := c.labels(expr)
		for _, label := range q.uses {
			c.need(result, label, "the result")
		}
		if q.record != "" {
			c.known[q.record] = metric{"recorded", result}
		}
	}
	return slices.Compact(c.faults)
}

// checker finds the labels of expressions.
type checker struct {
	known  catalog
	where  string
	faults []string
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, c.where+": "+fmt.Sprintf(format, args...))
}

func (c *checker) need(have set, label, of string) {
	if have != nil && !have[label] {
		c.fault("%s has no label %s", of, label)
	}
}

// labels returns those that the results of an expression can have. It is nil after a fault which leaves them unknown.
func (c *checker) labels(expr parser.Expr) set {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return c.selector(e)
	case *parser.MatrixSelector:
		return c.labels(e.VectorSelector)
	case *parser.SubqueryExpr:
		return c.labels(e.Expr)
	case *parser.ParenExpr:
		return c.labels(e.Expr)
	case *parser.UnaryExpr:
		return c.labels(e.Expr)
	case *parser.AggregateExpr:
		return c.aggregation(e)
	case *parser.Call:
		return c.call(e)
	case *parser.BinaryExpr:
		return c.binary(e)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return set{}
	}
	c.fault("%s: this check knows no %T", expr, expr)
	return nil
}

func (c *checker) selector(s *parser.VectorSelector) set {
	m, exists := c.known.lookup(s.Name)
	if !exists {
		c.fault("there is no metric %q", s.Name)
		return nil
	}
	result := m.labels
	if m.kind != "recorded" {
		result = result.with(targetLabels...)
	}
	for _, matcher := range s.LabelMatchers {
		if matcher.Name != labels.MetricName {
			c.need(result, matcher.Name, s.Name)
		}
	}
	return result
}

func (c *checker) aggregation(e *parser.AggregateExpr) set {
	inner := c.labels(e.Expr)
	for _, label := range e.Grouping {
		c.need(inner, label, e.Expr.String())
	}
	switch {
	case inner == nil:
		return nil
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return inner
	case e.Without:
		return inner.without(e.Grouping...)
	}
	return setOf(e.Grouping...)
}

func (c *checker) call(e *parser.Call) set {
	switch e.Func.Name {
	case "rate", "increase", "irate":
		c.needCounter(e.Args[0])
	case "absent":
		c.labels(e.Args[0])
		return set{}
	case "label_replace", "label_join":
		c.fault("%s: this check knows no %s", e, e.Func.Name)
		return nil
	case "histogram_quantile":
		inner := c.labels(e.Args[1])
		c.need(inner, "le", e.Args[1].String())
		return inner.without("le")
	}
	result := set{}
	for _, arg := range e.Args {
		if t := arg.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
			result = c.labels(arg)
		}
	}
	return result
}

func (c *checker) needCounter(arg parser.Expr) {
	if m, isMatrix := arg.(*parser.MatrixSelector); isMatrix {
		name := m.VectorSelector.(*parser.VectorSelector).Name
		if m, exists := c.known.lookup(name); exists && m.kind != "counter" && m.kind != "untyped" {
			c.fault("%s is a %s, which has no rate", name, m.kind)
		}
	}
}

func (c *checker) binary(e *parser.BinaryExpr) set {
	left, right := c.labels(e.LHS), c.labels(e.RHS)
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right
	case e.RHS.Type() == parser.ValueTypeScalar:
		return left
	case left == nil || right == nil:
		return nil
	}
	matching := e.VectorMatching
	for _, label := range matching.MatchingLabels {
		if matching.On {
			c.need(left, label, e.LHS.String())
			c.need(right, label, e.RHS.String())
		}
	}
	if !matching.On && !maps.Equal(left.without(matching.MatchingLabels...), right.without(matching.MatchingLabels...)) {
		c.fault("%s: the two sides have other labels, so nothing matches: %v and %v", e.Op, left.sorted(), right.sorted())
	}
	switch {
	case e.Op.IsSetOperator():
		return left
	case matching.Card != parser.CardOneToOne:
		c.fault("%s: this check knows no group_left and group_right", e)
		return nil
	case matching.On:
		return setOf(matching.MatchingLabels...)
	}
	return left.without(matching.MatchingLabels...)
}

func setOf(labels ...string) set { return set{}.with(labels...) }

func (s set) with(labels ...string) set {
	more := set{}
	maps.Copy(more, s)
	for _, label := range labels {
		more[label] = true
	}
	return more
}

func (s set) without(labels ...string) set {
	rest := maps.Clone(s)
	for _, label := range labels {
		delete(rest, label)
	}
	return rest
}

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }
