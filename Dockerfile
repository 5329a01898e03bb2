# The operator's image: the static binary alone, which `make image` builds first, so that the image needs no base, no
# registry and no compiler, and holds exactly what the Go toolchain of the checkout produced.
FROM scratch
COPY bin/image/manager /manager
# Numeric, so that the kubelet can see that it is not root.
USER 65532:65532
ENTRYPOINT ["/manager"]
