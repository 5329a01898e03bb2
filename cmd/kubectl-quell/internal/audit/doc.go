// Package audit finds write storms, retry loops and read floods in audit logs of the API server.
package audit
