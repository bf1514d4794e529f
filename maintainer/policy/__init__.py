"""Policy files: read strictly, checked with positions, resolved with origins."""
