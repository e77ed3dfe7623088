"""CertificateSigningRequests: who approves, signs and clears them away."""
