package audit

const noFollow = 0
