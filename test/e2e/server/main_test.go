package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestHandler(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("HOSTNAME", "shop-1")
	server := httptest.NewServer(handler())
	t.Cleanup(server.Close)
	closed := httptest.NewServer(handler())
	closed.Close()
	host := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	for path, want := range map[string]int{
		"/": http.StatusOK, "/other": http.StatusNotFound, "/dial": http.StatusBadGateway,
		"/dial?address=" + host(server): http.StatusOK, "/dial?address=" + host(closed): http.StatusBadGateway,
	} {
		response, err := http.Get(server.URL + path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response).To(HaveHTTPStatus(want), path)
		if path == "/" {
			g.Expect(response).To(HaveHTTPBody("shop-1\n"))
		}
		g.Expect(response.Body.Close()).To(Succeed())
	}
}
