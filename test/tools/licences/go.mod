module github.com/hduolab/quell/test/tools/licences

go 1.26.0

require github.com/google/licenseclassifier/v2 v2.0.0

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/sergi/go-diff v1.1.0 // indirect
)
