// Package ssa holds the tests of package controller/ssa against a real API server: each test counts the requests of the
// client under test and looks at resourceVersion on the server. They need the programs of package test/localcluster and
// are left out with -short.
package ssa
